import Base
import Telemetry

/// A sink for commands without a metrics log.
struct SilentSink: LineSink {
    let droppedLines = 0

    func write(_ line: JSONLine) -> Bool { false }
}
