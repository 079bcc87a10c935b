internal import Base

/// The part of the program that measures: OpenTelemetry's instrumentation scope. The worker is a single one.
struct Scope {
    let version: String

    func write(to line: inout JSONLine) {
        line.object("scope") { line in
            line.field("name", "refresh-worker")
            line.field("version", version)
        }
    }
}
