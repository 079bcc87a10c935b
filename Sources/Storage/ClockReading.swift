package import Base

/// A reading of both clocks at one instant: the wall clock, which may be stepped, and the boot clock, which cannot.
package struct ClockReading: Hashable, Sendable {
    package var now: Timestamp
    package var sinceBoot: BootInstant
    /// The id of the boot that `sinceBoot` belongs to.
    package var bootID: String

    package init(now: Timestamp, sinceBoot: BootInstant, bootID: String) {
        self.now = now
        self.sinceBoot = sinceBoot
        self.bootID = bootID
    }
}

extension ClockReading {
    /// The stored form: both clocks in milliseconds, and the id of the boot.
    package var stored: String { "\(now.milliseconds) \(sinceBoot.milliseconds) \(bootID)" }

    package init?(stored text: String) {
        let parts = text.split(separator: " ", maxSplits: 2)
        guard parts.count == 3, let wall = Int64(parts[0]), let boot = Int64(parts[1]) else { return nil }
        self.init(
            now: Timestamp(milliseconds: wall),
            sinceBoot: BootInstant(milliseconds: boot),
            bootID: String(parts[2])
        )
    }
}
