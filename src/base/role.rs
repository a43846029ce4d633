//! What the holder of a token may do.

/// What an actor may do. Each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserRole {
    /// May read.
    Viewer,
    /// May also chat.
    User,
    /// May also configure, decide approvals and retry deliveries.
    Admin,
    /// Whoever runs commands on the machine itself. No user, session, token or relay has
    /// this role: only a connection over `hearth.sock` with the secret of this start does.
    Owner,
}

impl UserRole {
    /// The roles that a user or a token may have, lowest first.
    pub const ALL: [UserRole; 3] = [UserRole::Viewer, UserRole::User, UserRole::Admin];

    /// Its word in columns, on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            UserRole::Viewer => "viewer",
            UserRole::User => "user",
            UserRole::Admin => "admin",
            UserRole::Owner => "owner",
        }
    }

    /// The role of a word, if a user or a token may have it.
    pub fn parse(word: &str) -> Option<UserRole> {
        UserRole::ALL.into_iter().find(|role| role.as_str() == word)
    }
}
