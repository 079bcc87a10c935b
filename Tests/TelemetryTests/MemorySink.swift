import Base
import Synchronization
import Telemetry

/// A sink that keeps its lines in memory.
final class MemorySink: LineSink {
    private let recorded = Mutex<[JSONLine]>([])

    var lines: [JSONLine] { recorded.withLock { $0 } }
    var droppedLines: Int { 0 }

    @discardableResult
    func write(_ line: JSONLine) -> Bool {
        recorded.withLock { $0.append(line) }
        return true
    }
}
