//! JSON values in the words of JSON, as `serde_json::json!` has them, in a
//! quarter of the code: a member is one call here, where that macro writes out
//! the whole way into the object. The server answers with hundreds of them.

use serde::Serialize;
use serde_json::{Map, Value};

/// The JSON of a value.
///
/// It must have one: a map whose keys are neither text nor numbers has none.
#[inline(never)]
pub fn value<T: Serialize + ?Sized>(value: &T) -> Value {
    serde_json::to_value(value).expect("what is answered has a JSON text")
}

/// An object without members.
#[inline(never)]
pub fn object() -> Map<String, Value> {
    Map::new()
}

/// Sets a member of an object.
#[inline(never)]
pub fn set<T: Serialize + ?Sized>(object: &mut Map<String, Value>, key: &str, value: &T) {
    put(object, key, self::value(value));
}

/// Sets a member of an object to what is a [`Value`] already.
#[inline(never)]
pub fn put(object: &mut Map<String, Value>, key: &str, value: Value) {
    object.insert(key.to_owned(), value);
}

/// A [`Value`]: an object, an array, `null`, or what any expression gives.
/// Expressions stand for values alone; keys are texts.
macro_rules! json {
    (null) => { ::serde_json::Value::Null };
    ({ $($members:tt)* }) => {{
        #[allow(unused_mut, reason = "an object may be empty")]
        let mut object = $crate::json::object();
        $crate::json::json!(@members object $($members)*);
        ::serde_json::Value::Object(object)
    }};
    ([ $($items:tt)* ]) => { ::serde_json::Value::Array($crate::json::json!(@items [] $($items)*)) };

    (@members $object:ident) => {};
    (@members $object:ident $key:tt : null $(, $($rest:tt)*)?) => {
        $crate::json::put(&mut $object, $key, ::serde_json::Value::Null);
        $crate::json::json!(@members $object $($($rest)*)?);
    };
    (@members $object:ident $key:tt : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::json::put(&mut $object, $key, $crate::json::json!({ $($inner)* }));
        $crate::json::json!(@members $object $($($rest)*)?);
    };
    (@members $object:ident $key:tt : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $crate::json::put(&mut $object, $key, $crate::json::json!([ $($inner)* ]));
        $crate::json::json!(@members $object $($($rest)*)?);
    };
    (@members $object:ident $key:tt : $value:expr $(, $($rest:tt)*)?) => {
        $crate::json::set(&mut $object, $key, &$value);
        $crate::json::json!(@members $object $($($rest)*)?);
    };

    (@items [ $($done:expr,)* ]) => { ::std::vec![ $($done),* ] };
    (@items [ $($done:expr,)* ] { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::json::json!(@items [ $($done,)* $crate::json::json!({ $($inner)* }), ] $($($rest)*)?)
    };
    (@items [ $($done:expr,)* ] [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $crate::json::json!(@items [ $($done,)* $crate::json::json!([ $($inner)* ]), ] $($($rest)*)?)
    };
    (@items [ $($done:expr,)* ] $item:expr $(, $($rest:tt)*)?) => {
        $crate::json::json!(@items [ $($done,)* $crate::json::value(&$item), ] $($($rest)*)?)
    };

    ($value:expr) => { $crate::json::value(&$value) };
}
pub(crate) use json;

#[cfg(test)]
mod tests {
    use serde_json::json as expected;

    #[test]
    fn it_reads_as_the_macro_of_serde_json() {
        let (name, none) = ("cat", None::<u8>);
        assert_eq!(json!(null), expected!(null));
        assert_eq!(json!(name), expected!(name));
        assert_eq!(json!({}), expected!({}));
        assert_eq!(json!([]), expected!([]));
        assert_eq!(
            json!([1, [2], { "three": name }, none, null_of(name),]),
            expected!([1, [2], { "three": name }, none, null_of(name),])
        );
        assert_eq!(
            json!({
                "z": null,
                "a": { "inner": [name.len(), -1.5], "empty": {} },
                name: [true],
                "last": match name { "cat" => Some(name), _ => None },
                "a": name.len(),
            })
            .to_string(),
            expected!({
                "z": null,
                "a": { "inner": [name.len(), -1.5], "empty": {} },
                name: [true],
                "last": match name { "cat" => Some(name), _ => None },
                "a": name.len(),
            })
            .to_string()
        );
    }

    fn null_of(_: &str) -> Option<&str> {
        None
    }
}
