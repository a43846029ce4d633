//! How a command is declared.

use base::role::UserRole;

/// A command as it is declared, for error messages and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its `type` on the wire.
    pub name: &'static str,
    /// The least role that may send it.
    pub role: UserRole,
    /// Which credentials of that role may.
    pub scope: Scope,
    /// Its fields beside `type` and `id`.
    pub fields: &'static [&'static str],
    /// What it does, in one or two sentences.
    pub documentation: &'static str,
}

/// Which credentials of a role may send a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every one.
    Any,
    /// Those of a person: the machine's owner names one with `as_user`.
    Person,
    /// Those that are as good as the person. Whoever holds a narrowed token need not be
    /// the person: it does nothing about the account but sign itself out.
    Account,
    /// Those whose turns have all tools of their person, since a schedule's have. A token
    /// that is narrowed to the role viewer is none of them.
    Schedules,
}

/// Makes, of each command's declaration, a variant of `Command`, a struct of its
/// fields, its entry in `DECLARATIONS`, its case in the parser and its role.
///
/// `"name" Role Scope Variant(Fields { field: Type = reader, ... })`: a reader takes the
/// request's [`Fields`](crate::fields::Fields) and the field's name. A command
/// without fields is a variant alone. `Variant(Type)` names a type that declares
/// `FIELDS` and `read` itself.
macro_rules! commands {
    ($(
        $(#[doc = $doc:literal])+
        $name:literal $role:ident $scope:ident $variant:ident $(( $payload:ident $({
            $( $(#[$field_doc:meta])+ $field:ident: $type:ty = $reader:path, )+
        })? ))?,
    )+) => {
        /// What a client asks for.
        #[derive(Debug)]
        pub enum Command {
            $( $(#[doc = $doc])+ $variant $(($payload))?, )+
        }

        /// Every command, the contract's seven first.
        pub const DECLARATIONS: &[Declaration] = &[
            $( Declaration {
                name: $name,
                role: UserRole::$role,
                scope: Scope::$scope,
                fields: commands!(@fields $($payload)?),
                documentation: concat!($($doc),+),
            }, )+
        ];

        impl Command {
            /// Reads the command of this name, and returns its declaration, which one with
            /// malformed fields has too.
            fn read(name: &str, fields: &mut Fields) -> Result<(&'static Declaration, Result<Command>)> {
                let declaration = DECLARATIONS.iter().find(|one| one.name == name);
                let declaration = declaration.ok_or_else(|| unknown(name))?;
                let command = match name {
                    $( $name => commands!(@read fields $variant $($payload)?), )+
                    _ => Err(unknown(name)),
                };
                Ok((declaration, command))
            }
        }

        $($($(
            #[doc = concat!("The fields of `", $name, "`.")]
            #[derive(Debug)]
            pub struct $payload {
                $( $(#[$field_doc])+ pub $field: $type, )+
            }

            impl $payload {
                const FIELDS: &[&str] = &[$(stringify!($field)),+];

                fn read(fields: &mut Fields) -> Result<$payload> {
                    Ok($payload {
                        $( $field: $reader(fields, stringify!($field))?, )+
                    })
                }
            }
        )?)?)+
    };
    (@read $fields:ident $variant:ident) => { Ok(Command::$variant) };
    (@read $fields:ident $variant:ident $payload:ident) => {
        $payload::read($fields).map(Command::$variant)
    };
    (@fields) => { &[] };
    (@fields $payload:ident) => { $payload::FIELDS };
}
