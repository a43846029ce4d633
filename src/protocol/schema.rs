//! JSON Schema (draft 2020-12) of what goes over the wire, made from the same
//! declarations as the types themselves.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Number, Value, json};

use base::clock::Timestamp;
use base::error::Code;
use base::ids::{
    ApprovalId, AttachmentId, CalendarId, ConversationId, DeliveryId, EventId, ItemId, MemoryId,
    MessageId, ScheduleId, TokenId, TurnId,
};
use base::language::Said;
use base::people::Audience;
use base::reply::FinishReason;

/// The schemas of records, which others refer to by name.
pub type Definitions = BTreeMap<&'static str, Value>;

/// A type that goes over the wire.
pub trait Schema {
    /// Its schema. A record adds itself to `definitions` and is referred to.
    fn schema(definitions: &mut Definitions) -> Value;
}

/// A field of a record, as it is declared.
pub(crate) struct Field {
    pub name: &'static str,
    /// What `#[serde(...)]` says.
    pub serde: &'static str,
    pub documentation: &'static str,
    pub schema: fn(&mut Definitions) -> Value,
}

/// The schema of an object with these fields.
pub(crate) fn object(fields: &[Field], definitions: &mut Definitions) -> Map<String, Value> {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in fields {
        let mut schema = (field.schema)(definitions);
        if field.serde.contains("flatten") {
            let of_option = &schema["anyOf"][0]["$ref"];
            let record = schema["$ref"].as_str().or(of_option.as_str());
            let record = record.and_then(|to| to.rsplit('/').next());
            let inner = record.and_then(|name| definitions.get(name));
            let members = |key: &str| inner.map(|inner| inner[key].clone());
            if let Some(Value::Object(inner)) = members("properties") {
                properties.extend(inner);
            }
            let is_always_there = !field.serde.contains("skip_serializing_if");
            if let Some(Value::Array(inner)) = members("required").filter(|_| is_always_there) {
                required.extend(inner);
            }
            continue;
        }
        let renamed = field.serde.split_once("rename = \"");
        let name = renamed.and_then(|(_, rest)| rest.split('"').next());
        let name = name.unwrap_or(field.name);
        schema["description"] = json!(sentence(field.documentation));
        if !field.serde.contains("skip_serializing_if") {
            required.push(json!(name));
        }
        properties.insert(name.to_owned(), schema);
    }
    Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), json!(properties)),
        ("required".to_owned(), json!(required)),
    ])
}

/// Adds the schema of a record once, and refers to it.
pub(crate) fn define(
    name: &'static str,
    documentation: &'static str,
    fields: &[Field],
    definitions: &mut Definitions,
) -> Value {
    if !definitions.contains_key(name) {
        let mut schema = object(fields, definitions);
        schema.insert("description".to_owned(), json!(sentence(documentation)));
        definitions.insert(name, Value::Object(schema));
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// The schema of an object whose members a reader names one by one.
#[derive(Debug, Serialize)]
pub(crate) struct Description {
    r#type: &'static str,
    pub properties: Map<String, Value>,
    pub required: Vec<String>,
}

impl Default for Description {
    fn default() -> Description {
        Description {
            r#type: "object",
            properties: Map::new(),
            required: Vec::new(),
        }
    }
}

/// The text of a documentation comment, on one line.
pub(crate) fn sentence(documentation: &str) -> String {
    documentation.trim().replace("  ", " ")
}

/// Declares records: each struct is written as usual, and gets its schema, too.
macro_rules! records {
    ($(
        $(#[doc = $about:literal])+
        pub struct $name:ident {$(
            $(#[doc = $doc:literal])+
            $(#[serde($($serde:tt)+)])?
            pub $field:ident: $type:ty,
        )+}
    )+) => {$(
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
        pub struct $name {$(
            $(#[doc = $doc])+
            $(#[serde($($serde)+)])?
            pub $field: $type,
        )+}

        impl $crate::schema::Schema for $name {
            fn schema(definitions: &mut $crate::schema::Definitions) -> serde_json::Value {
                let fields = $crate::schema::fields!($(
                    $(#[doc = $doc])+ $(#[serde($($serde)+)])? $field: $type,
                )+);
                $crate::schema::define(
                    stringify!($name),
                    concat!($($about),+),
                    fields,
                    definitions,
                )
            }
        }
    )+};
}
pub(crate) use records;

/// The [`Field`]s of a struct or of an event.
macro_rules! fields {
    ($(
        $(#[doc = $doc:literal])+
        $(#[serde($($serde:tt)+)])?
        $field:ident: $type:ty,
    )*) => {
        &[$($crate::schema::Field {
            name: stringify!($field),
            serde: stringify!($($($serde)+)?),
            documentation: concat!($($doc),+),
            schema: <$type as $crate::schema::Schema>::schema,
        }),*]
    };
}
pub(crate) use fields;

macro_rules! schemas {
    ($($($type:ty),+ => $schema:tt;)+) => {$($(
        impl Schema for $type {
            fn schema(_: &mut Definitions) -> Value {
                json!($schema)
            }
        }
    )+)+};
}

schemas! {
    String, &'static str, Said => { "type": "string" };
    bool => { "type": "boolean" };
    u32, u64, usize => { "type": "integer", "minimum": 0 };
    Value => {};
    Number => { "type": "number" };
    Map<String, Value> => { "type": "object" };
    Timestamp => { "type": "string", "format": "date-time" };
    Code => { "enum": Code::WORDS };
    FinishReason => { "enum": FinishReason::WORDS };
    Audience => {
        "anyOf": [
            { "enum": ["private", "household"] },
            { "type": "array", "items": { "type": "string" } }
        ]
    };
}

macro_rules! ids {
    ($($id:ty),+) => {$(
        impl Schema for $id {
            fn schema(_: &mut Definitions) -> Value {
                json!({ "type": "string", "pattern": format!("^{}", <$id>::PREFIX) })
            }
        }
    )+};
}

ids!(
    ApprovalId,
    AttachmentId,
    ConversationId,
    DeliveryId,
    ItemId,
    MemoryId,
    MessageId,
    ScheduleId,
    CalendarId,
    EventId,
    TokenId,
    TurnId
);

impl<T: Schema> Schema for Option<T> {
    fn schema(definitions: &mut Definitions) -> Value {
        match T::schema(definitions) {
            Value::Object(members) if members.is_empty() => json!({}),
            schema => json!({ "anyOf": [schema, { "type": "null" }] }),
        }
    }
}

impl<T: Schema> Schema for Vec<T> {
    fn schema(definitions: &mut Definitions) -> Value {
        json!({ "type": "array", "items": T::schema(definitions) })
    }
}

impl<T: Schema> Schema for BTreeMap<String, T> {
    fn schema(definitions: &mut Definitions) -> Value {
        json!({ "type": "object", "additionalProperties": T::schema(definitions) })
    }
}
