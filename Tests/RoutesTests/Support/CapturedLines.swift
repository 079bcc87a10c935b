import Base
import Synchronization
import Telemetry

/// The lines of a metrics log in memory, accepted or refused as a test decides.
final class CapturedLines: LineSink {
    private let lines = Mutex<[String]>([])
    private let refuses = Mutex(false)

    var droppedLines: Int { 0 }
    var texts: [String] { lines.withLock { $0 } }

    /// The lines of one kind of event.
    func lines(of event: String) -> [JSONValue] {
        texts.compactMap { JSONValue.object(in: $0.utf8) }.filter { $0["event"]?.string == event }
    }

    /// The audit's lines.
    var vends: [JSONValue] { lines(of: "vend") }

    /// The kind, outcome, grants and sessions of each line about a security event.
    var securityEvents: [String] {
        lines(of: "security_event").map { line in
            let counts = "\(line["grants"]?.integer ?? -1) \(line["sessions"]?.integer ?? -1)"
            return "\(line["kind"]?.string ?? "") \(line["outcome"]?.string ?? "") \(counts)"
        }
    }

    /// Refuses the lines from now on, as a log does that may lose them.
    func refuse() { refuses.withLock { $0 = true } }

    func write(_ line: JSONLine) -> Bool {
        lines.withLock { $0.append(line.text) }
        return !refuses.withLock { $0 }
    }
}
