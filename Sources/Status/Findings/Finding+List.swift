package import Base

extension [Finding] {
    /// Writes the verdict, as a word for programs, and the findings.
    package func write(into line: inout JSONLine) {
        line.field("verdict", severity?.rawValue ?? "ok")
        line.objects("concerns", self) { $0.write(into: &$1) }
    }
}

extension [Finding] {
    /// That of the most urgent finding, or `nil` if all is well.
    package var severity: Severity? { map(\.severity).min() }

    /// The verdict for people.
    package var verdict: String { severity?.verdict ?? "All is well" }
}
