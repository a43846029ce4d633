//! Machines that registered for relay connectivity.

use rusqlite::params;

use crate::engine::database::Store;
use base::error::Result;
use base::ids::MachineId;

impl Store {
    /// Stores a machine under its id. Registering it again updates its name.
    pub fn register_machine(
        &self,
        id: &MachineId,
        name: &str,
        public_key: &[u8; 32],
    ) -> Result<()> {
        let (id, name, public_key) = (id.clone(), name.to_owned(), *public_key);
        self.write(move |write| {
            write.run(
                "INSERT INTO machines (id, name, public_key, registered_at)
                 VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (id) DO UPDATE SET name = ?2",
                params![id.as_str(), name, public_key, write.now],
            )
        })
    }
}
