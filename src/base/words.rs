//! Enums that are stored, and sent, as words.

/// Gives an enum its words: `WORDS`, `as_str` and `parse`.
#[macro_export]
macro_rules! words {
    ($kind:ty { $($variant:ident: $word:literal,)* }) => {
        impl $kind {
            /// All words.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

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
    };
}
