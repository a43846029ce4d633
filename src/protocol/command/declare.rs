//! How a command is declared.

use base::role::UserRole;

/// A command as it is declared, for error messages and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its `type` on the wire.
    pub name: &'static str,
    /// The least role that may send it.
    pub role: UserRole,
    /// Its fields beside `type` and `id`.
    pub fields: &'static [&'static str],
    /// What it does, in one or two sentences.
    pub documentation: &'static str,
}

/// Makes, of each command's declaration, a variant of `Command`, a struct of its
/// fields, its entry in `DECLARATIONS`, its case in the parser and its role.
///
/// `"name" Role Variant(Fields { field: Type = reader, ... })`: a reader takes the
/// request's [`Fields`](crate::fields::Fields) and the field's name. A command
/// without fields is a variant alone. `Variant(Type)` names a type that declares
/// `FIELDS` and `read` itself.
macro_rules! commands {
    ($(
        $(#[doc = $doc:literal])+
        $name:literal $role:ident $variant:ident $(( $payload:ident $({
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
                fields: commands!(@fields $($payload)?),
                documentation: concat!($($doc),+),
            }, )+
        ];

        impl Command {
            /// Reads the command of this name. The role is the least that may send it,
            /// which a command with malformed fields has too.
            fn read(name: &str, fields: &mut Fields) -> (UserRole, Result<Command>) {
                match name {
                    $( $name => (
                        UserRole::$role,
                        commands!(@read fields $variant $($payload)?),
                    ), )+
                    _ => (UserRole::Viewer, Err(unknown(name))),
                }
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
