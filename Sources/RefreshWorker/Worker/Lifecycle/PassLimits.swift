import Base
import Scheduler

/// When the parts of a pass end at the latest.
struct PassLimits {
    /// The limit of a pass in every case, because cron starts the next one.
    static let maximumPass: Duration = .seconds(300)

    /// The time that the engine has to store results.
    let timeToStop: Duration
    /// When the engine stops.
    let stopping: BootInstant
    /// When the other parts stop.
    let closing: BootInstant

    init(from start: BootInstant, timeToStop: Duration) {
        self.timeToStop = timeToStop
        closing = start + (Self.maximumPass - Worker.timeToClose - .seconds(1))
        stopping = closing - timeToStop - RefreshEngine.maximumOverrun
    }
}
