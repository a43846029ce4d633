//! The text of PDFs, by `pdftotext` of poppler-utils: a large program in C++ that reads what
//! strangers wrote. So it runs only where the kernel has Landlock, without any file or network,
//! and within limits of bytes, pages, memory and time.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fmt};

use super::process::{self, RunOptions};
use net::cancel::Cancel;
use net::process::{ExitReason, Sandbox, has_landlock};
use store::Snapshot;

/// Largest PDF that is read.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Most pages that are read, and most bytes of their text.
const MAX_PAGES: usize = 200;
const MAX_TEXT: usize = 2 * 1024 * 1024;
/// Longest run.
const MAX_TIME: Duration = Duration::from_secs(30);
/// The shell limits the memory to 512 MB. Columns stay beside each other, as in bills and
/// timetables.
const SCRIPT: &str =
    "ulimit -c 0; ulimit -v 524288; exec pdftotext -q -layout -enc UTF-8 -l \"$0\" - -";
/// Longest gap between columns that is kept.
const MAX_GAP: usize = 3;

/// Why no PDF is read on this machine; none where they are.
pub fn pdf_obstacle() -> Option<&'static str> {
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let is_there = env::split_paths(&path).any(|directory| directory.join("pdftotext").is_file());
    if !is_there {
        Some("pdftotext (package poppler-utils) is not installed")
    } else if !has_landlock() {
        Some("pdftotext is not run, since this kernel has no Landlock to confine it")
    } else {
        None
    }
}

/// Why there is no text of a PDF, to follow the name of the file.
#[derive(Debug)]
pub enum PdfError {
    /// The file is to blame.
    Unreadable(&'static str),
    /// It takes longer than there was time.
    TooSlow,
    /// It may be read another time.
    NotRead(String),
}

impl fmt::Display for PdfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PdfError::Unreadable(why) => write!(f, "is a PDF {why}"),
            PdfError::TooSlow => f.write_str("is a PDF that takes too long to read"),
            PdfError::NotRead(why) => write!(f, "is a PDF, which {why}"),
        }
    }
}

/// The text of a PDF, each page under its number.
///
/// # Errors
/// Why there is none.
pub(crate) fn text_of_pdf(
    pdf: Vec<u8>,
    data_dir: &Path,
    deadline: Instant,
    cancel: &Cancel,
) -> Result<String, PdfError> {
    if let Some(obstacle) = pdf_obstacle() {
        return Err(PdfError::NotRead(format!(
            "cannot be read here: {obstacle}"
        )));
    }
    if pdf.len() > MAX_BYTES {
        return Err(PdfError::Unreadable("of more than 16 MB"));
    }
    Snapshot::none_open();
    let mut command = process::command("/bin/sh");
    command
        .args(["-c", SCRIPT, &MAX_PAGES.to_string()])
        .current_dir("/");
    let options = RunOptions {
        input: pdf,
        output_bytes: MAX_TEXT,
        deadline: deadline.min(Instant::now() + MAX_TIME),
        children_may_stay: false,
    };
    let finished = process::run(
        &mut command,
        Some(&Sandbox::closed(data_dir)),
        options,
        cancel,
    )
    .map_err(|error| {
        log::warn!("pdftotext: {error}");
        PdfError::NotRead("was not read: pdftotext could not be run".to_owned())
    })?;
    match finished.end {
        ExitReason::Exited(status) if status.success() => {}
        ExitReason::Exited(_) => {
            return Err(PdfError::Unreadable("that is damaged or protected"));
        }
        ExitReason::TimedOut => return Err(PdfError::TooSlow),
        ExitReason::Stopped | ExitReason::OutputClosed => {
            return Err(PdfError::NotRead("was not read to its end".to_owned()));
        }
    }
    let is_cut = finished.stdout.is_cut();
    let text = String::from_utf8_lossy(&finished.stdout.into_bytes()).into_owned();
    // Each page ends with a form feed.
    let count = text.matches('\u{c}').count();
    let pages = text.split('\u{c}').enumerate();
    let pages = pages.map(|(place, page)| (place + 1, tidied(page)));
    let pages = pages.filter(|(_, page)| !page.is_empty());
    let mut parts: Vec<String> = pages
        .map(|(number, page)| format!("[page {number}]\n{page}"))
        .collect();
    if parts.is_empty() {
        return Err(PdfError::Unreadable(
            "without text: its pages may be pictures",
        ));
    }
    if is_cut || count >= MAX_PAGES {
        parts.push(format!("[only the first {} pages were read]", count.max(1)));
    }
    Ok(parts.join("\n\n"))
}

/// A page without wide gaps and without empty lines in a row.
fn tidied(page: &str) -> String {
    let mut text = String::new();
    let mut spaces = 0;
    for letter in page.trim_matches('\n').chars() {
        match letter {
            ' ' => spaces += 1,
            '\n' => {
                spaces = 0;
                if !text.ends_with("\n\n") {
                    text.push('\n');
                }
            }
            control if control.is_control() => {}
            letter => {
                text.extend(std::iter::repeat_n(' ', spaces.min(MAX_GAP)));
                spaces = 0;
                text.push(letter);
            }
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// PDFs for tests: without a table of places, which readers do without.
#[cfg(test)]
pub(crate) mod samples {
    /// One page that shows lines of text.
    pub(crate) fn letter(lines: &[&str]) -> Vec<u8> {
        let shown = lines.iter().map(|line| format!("({line}) Tj 0 -20 Td "));
        let content = format!("BT /F 12 Tf 50 700 Td {}ET", shown.collect::<String>());
        document("/Kids [3 0 R] /Count 1", &content, "")
    }

    /// A document with these entries of its pages, the first page's content, and more objects.
    pub(crate) fn document(pages: &str, content: &str, objects: &str) -> Vec<u8> {
        format!(
            "%PDF-1.4\n1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj\n\
             2 0 obj <</Type /Pages {pages}>> endobj\n\
             3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R \
             /Resources <</Font <</F 5 0 R>> /XObject <</X0 10 0 R>>>>>> endobj\n\
             4 0 obj <</Length {}>> stream\n{content}\nendstream endobj\n\
             5 0 obj <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> endobj\n\
             {objects}trailer <</Root 1 0 R>>\n%%EOF\n",
            content.len()
        )
        .into_bytes()
    }

    /// A small one whose content would be shown 2 to the power of 60 times.
    pub(crate) fn endless() -> Vec<u8> {
        let forms = (0..60).map(|level| {
            let next = level + 1;
            let content = format!("/X{next} Do /X{next} Do");
            format!(
                "1{level} 0 obj <</Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources \
                 <</XObject <</X{next} 1{next} 0 R>>>> /Length {}>> stream\n{content}\n\
                 endstream endobj\n",
                content.len()
            )
        });
        document(
            "/Kids [3 0 R] /Count 1",
            "/X0 Do",
            &forms.collect::<String>(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{document, endless, letter};
    use super::*;
    use base::testing::{TemporaryDirectory, skipped};

    fn text_within(pdf: Vec<u8>, time: Duration) -> Result<String, String> {
        let data = TemporaryDirectory::new();
        let text = text_of_pdf(pdf, &data, Instant::now() + time, &Cancel::default());
        text.map_err(|why| why.to_string())
    }

    fn text(pdf: Vec<u8>) -> Result<String, String> {
        text_within(pdf, Duration::from_secs(60))
    }

    #[test]
    fn the_text_of_a_pdf_is_read() {
        if let Some(obstacle) = pdf_obstacle() {
            return skipped(obstacle);
        }
        let pdf = letter(&["Dear Ann,", "your bill:          62 EUR"]);
        let expected = "[page 1]\nDear Ann,\nyour bill:   62 EUR";
        assert_eq!(text(pdf).as_deref(), Ok(expected));
        let numbers = || (200..500).map(|number| format!("{number} 0 R "));
        let kids = format!("/Kids [{}] /Count 300", numbers().collect::<String>());
        let page = "<</Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R \
                    /Resources <</Font <</F 5 0 R>>>>>> endobj\n";
        let pages = numbers().map(|number| number.replace('R', "obj") + page);
        let shown = "BT /F 9 Tf 9 9 Td (Hi) Tj ET";
        let many = text(document(&kids, shown, &pages.collect::<String>())).unwrap();
        let end = "[page 200]\nHi\n\n[only the first 200 pages were read]";
        assert!(many.ends_with(end), "{many}");
    }

    #[test]
    fn whatever_a_pdf_is_its_reading_ends_within_the_limits() {
        if let Some(obstacle) = pdf_obstacle() {
            return skipped(obstacle);
        }
        let loops = document("/Kids [2 0 R] /Count 9", "", "");
        let huge = document(
            "/Kids [3 0 R] /Count 999999999 /MediaBox [0 0 1e9 1e9]",
            "",
            "",
        );
        for (pdf, why) in [
            (b"%PDF-1.7 nothing".to_vec(), "damaged or protected"),
            (vec![0; 100_000], "damaged or protected"),
            (Vec::new(), "damaged or protected"),
            (loops, "is a PDF"),
            (huge, "is a PDF"),
            (letter(&[]), "without text"),
            (vec![0; MAX_BYTES + 1], "more than 16 MB"),
        ] {
            let problem = text(pdf).unwrap_err();
            assert!(problem.contains(why), "{problem}");
        }
        let problem = text_within(endless(), Duration::from_secs(1)).unwrap_err();
        assert!(problem.contains("too long"), "{problem}");
    }
}
