import Base
import Storage

extension DatabaseLocation {
    /// The clock for stored times: the server's if there is one, because the clocks of its clients might differ.
    var clock: any TimeSource {
        switch self {
        case .file: SystemTime()
        case .server: DatabaseClock(local: SystemTime())
        }
    }
}
