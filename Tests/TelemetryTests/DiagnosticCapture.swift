import Telemetry
import TestSupport

@testable import Base

/// A diagnostic log whose lines a test reads back.
struct DiagnosticCapture {
    let pipe = TestPipe()
    let log: DiagnosticLog

    init(level: LogLevel = .debug, time: any TimeSource = ManualTime()) {
        log = DiagnosticLog(level: level, time: time, descriptor: pipe.writer)
    }

    func lines() -> [String] { pipe.readAvailable().split(separator: "\n").map(String.init) }
}
