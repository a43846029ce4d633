//! The interfaces for programs.

mod home_assistant_peers;
pub mod library_peers;
pub mod model_api;
mod model_api_peers;
mod program_peers;
mod sdk_peers;
