//! The sample configurations are good: the program itself says so.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn every_sample_configuration_passes_the_check() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/config");
    let mut checked = 0;
    for sample in fs::read_dir(samples).unwrap() {
        let sample = sample.unwrap().path();
        let name = sample.file_stem().unwrap().to_str().unwrap().to_owned();
        let data = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sample-{name}"));
        fs::create_dir_all(&data).unwrap();
        fs::copy(&sample, data.join("config.json")).unwrap();
        let ran = Command::new(env!("CARGO_BIN_EXE_hearth"))
            .args(["config", "check", "--data-dir"])
            .arg(&data)
            .env("OPENAI_API_KEY", "sk-test")
            .env("HOOK_SECRET", "a secret of more than 32 characters")
            .env("DOORBELL_SECRET", "a secret of more than 32 characters")
            .env("HOME_ASSISTANT_AUTHORIZATION", "Bearer a long-lived token")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{}: {errors}", sample.display());
        fs::remove_dir_all(&data).unwrap();
        checked += 1;
    }
    assert!(checked >= 3, "only {checked} samples were found");
}
