//! Enums that are stored, and sent, as words.

/// Gives an enum its words: `as_str`, `parse`, and the columns that hold it.
macro_rules! words {
    ($kind:ty { $($variant:ident: $word:literal,)* }) => {
        base::words! { $kind { $($variant: $word,)* } }
        base::word_columns! { $kind }
    };
}

pub(crate) use words;
