//! Enums that are stored, and sent, as words.

/// Gives an enum its words: `as_str`, `parse`, and the columns that hold it.
macro_rules! words {
    ($kind:ty { $($variant:ident: $word:literal,)* }) => {
        impl $kind {
            /// The word for it in the database and on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The value that a word stands for.
            pub fn parse(word: &str) -> Option<$kind> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        base::word_columns! { $kind }
    };
}

pub(crate) use words;
