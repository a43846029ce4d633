//! How a command is declared.

use serde_json::{Value, json};

use crate::schema::{Definitions, sentence};
use base::people::UserRole;

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

/// Makes the schemas of a command. Apart from its [`Declaration`], so that a program that
/// asks for none does not hold them.
pub struct CommandSchema {
    /// That of its fields.
    pub(super) request: fn() -> Value,
    /// That of its response's data.
    pub(super) response: fn(&mut Definitions) -> Value,
}

impl CommandSchema {
    /// The schemas of the request and of the response's data of this command.
    pub fn schema(&self, of: &Declaration, definitions: &mut Definitions) -> Value {
        let mut request = (self.request)();
        request["properties"]["type"] = json!({ "const": of.name });
        request["properties"]["id"] = json!({ "type": ["string", "integer"] });
        json!({
            "description": sentence(of.documentation),
            "role": of.role.as_str(),
            "request": request,
            "response": (self.response)(definitions),
        })
    }
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
    /// Those whose turns have all tools of their person: a schedule's turns have, and a list is
    /// changed by a tool. A token that is narrowed to the role viewer is none of them.
    AllTools,
    /// Those whose turns may look at calendars.
    Calendars,
}

/// Makes, of each command's declaration, a variant of `Command`, a struct of its
/// fields, its entry in `DECLARATIONS`, its case in the parser and its role.
///
/// `"name" Role Scope Variant(Fields { field: Type = reader, ... })`: a reader takes the
/// request's [`Fields`](crate::fields::Fields) and the field's name. A command
/// without fields is a variant alone. `Variant(Type)` names a type that declares
/// `FIELDS`, `read` and `schema` itself. `-> Record` or `-> { fields }` is the data of the
/// response.
macro_rules! commands {
    ($(
        $(#[doc = $doc:literal])+
        $name:literal $role:ident $scope:ident $variant:ident $(( $payload:ident $({
            $( $(#[doc = $field_doc:literal])+ $field:ident: $type:ty = $reader:path, )+
        })? ))?
        $( -> $record:ident )?
        $( -> {
            $( $(#[doc = $data_doc:literal])+ $(#[serde($($data_serde:tt)+)])?
               $data:ident: $data_type:ty, )+
        } )?,
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

        /// The schemas of every command, in the same order.
        pub const SCHEMAS: &[CommandSchema] = &[
            $( CommandSchema {
                request: commands!(@schema $($payload)?),
                response: |definitions| commands!(@response definitions
                    $(, $record)?
                    $(, { $( $(#[doc = $data_doc])+ $(#[serde($($data_serde)+)])?
                             $data: $data_type, )+ })?
                ),
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
                $( $(#[doc = $field_doc])+ pub $field: $type, )+
            }

            impl $payload {
                const FIELDS: &[&str] = &[$(stringify!($field)),+];

                fn read(fields: &mut Fields) -> Result<$payload> {
                    Ok($payload {
                        $( $field: $reader(fields, stringify!($field))?, )+
                    })
                }

                fn schema() -> Value {
                    let mut fields = Fields::default();
                    $( fields.describe(
                        stringify!($field),
                        concat!($($field_doc),+),
                        |fields| drop::<Result<$type>>($reader(fields, stringify!($field))),
                    ); )+
                    fields.into_schema()
                }
            }
        )?)?)+
    };
    (@read $fields:ident $variant:ident) => { Ok(Command::$variant) };
    (@read $fields:ident $variant:ident $payload:ident) => {
        $payload::read($fields).map(Command::$variant)
    };
    (@schema) => { || Fields::default().into_schema() };
    (@schema $payload:ident) => { $payload::schema };
    (@response $definitions:ident) => { { let _ = $definitions; Value::Null } };
    (@response $definitions:ident, $record:ident) => {
        <record::$record as Schema>::schema($definitions)
    };
    (@response $definitions:ident, { $($fields:tt)+ }) => {
        Value::Object(object(schema::fields!($($fields)+), $definitions))
    };
    (@fields) => { &[] };
    (@fields $payload:ident) => { $payload::FIELDS };
}
