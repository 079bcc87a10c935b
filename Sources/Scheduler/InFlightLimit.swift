package import Clocks

/// How many requests should be on their way at once: as many as the rate asks for at the endpoint's own latency.
///
/// More would not be answered sooner; they would cost connections, of which each begins with a handshake, and memory. The latency is
/// the quickest of the last while, because the usual one grows with the very number that is to be found.
package struct InFlightLimit: Sendable {
    /// So many are always allowed: below, a burst of a few grants would be sent in turns.
    package static let floor = 64
    /// Room for latencies that differ.
    private static let slack = 2.0
    /// How long the quickest answer counts, and at most twice as long.
    private static let memory: Duration = .seconds(10)

    private let ceiling: Int
    private var quickest: Duration?
    private var quickestBefore: Duration?
    private var turnsAt: BootInstant?

    /// A limit that never goes beyond `ceiling`.
    package init(ceiling: Int) {
        self.ceiling = ceiling
    }

    /// Takes note of how long an answer took.
    package mutating func learn(_ latency: Duration, at now: BootInstant) {
        if turnsAt.map({ now >= $0 }) ?? true {
            quickestBefore = quickest
            quickest = nil
            turnsAt = now + Self.memory
        }
        quickest = min(quickest ?? latency, latency)
    }

    /// The limit at a rate in requests a second.
    package func limit(at rate: Double) -> Int {
        let known = [quickest, quickestBefore].compactMap(\.self).min() ?? .zero
        let wanted = (rate * known.inSeconds * Self.slack).rounded(.up)
        return Int(min(max(wanted, Double(Self.floor)), Double(ceiling)))
    }
}
