package import Base

/// The start of the worker.
package struct StartedEvent: MetricsEvent {
    package static let name = "started"

    package static let fields: [MetricsField] = [
        .always("version", .string, "the worker's version"),
        .always("mode", .string, "`daemon` or `run_once`"),
    ]

    package var version: String
    /// `daemon` or `run_once`.
    package var mode: String

    package init(version: String, mode: String) {
        self.version = version
        self.mode = mode
    }

    package func write(into line: inout JSONLine) {
        line.text("version", version, limit: TextLimit.name)
        line.text("mode", mode, limit: TextLimit.name)
    }
}
