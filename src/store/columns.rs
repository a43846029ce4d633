//! How states and roles are stored in columns: by their words.

use super::records::{DeliveryState, Role, TurnState, UserRole, Verdict};

base::word_columns! { DeliveryState Role TurnState UserRole Verdict }
