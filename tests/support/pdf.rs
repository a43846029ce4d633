//! PDFs, for those who read them.

/// One page that shows this text, without a table of places, which readers do without.
pub fn letter(text: &str) -> Vec<u8> {
    let content = format!("BT /F 12 Tf 50 700 Td ({text}) Tj ET");
    format!(
        "%PDF-1.4\n1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj\n\
         2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj\n\
         3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R \
         /Resources <</Font <</F 5 0 R>>>>>> endobj\n\
         4 0 obj <</Length {}>> stream\n{content}\nendstream endobj\n\
         5 0 obj <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> endobj\n\
         trailer <</Root 1 0 R>>\n%%EOF\n",
        content.len()
    )
    .into_bytes()
}
