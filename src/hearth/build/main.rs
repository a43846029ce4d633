//! What cargo runs before it compiles: tells the compiler which commit this is,
//! and the linker how to lay out the program.

mod commit;
mod layout;

fn main() {
    println!("cargo::rerun-if-changed=src/hearth/build");
    commit::tell();
    layout::tell();
}
