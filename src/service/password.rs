//! Password hashing (argon2id).

use crate::error::Result;
use crate::secret::Secret;

/// The argon2id hash of a password in PHC form.
pub fn hash(password: &Secret) -> Result<String> {
    let _ = password;
    todo!()
}
