package import Base
private import Synchronization

/// Limits the rate at which one address can request an expensive operation, such as a call to another service.
///
/// An address that has sent nothing for a minute can use a minute's budget at once. Then it gets one request per
/// interval (the generic cell rate algorithm, which stores one instant per address).
package final class AddressBudget: Sendable {
    private struct State {
        /// The microsecond of the boot clock at which each address has its full budget again.
        var fullAt: [String: Int64] = [:]
        var cleanedUpAt: Int64?

        func mayCleanUp(at now: Int64) -> Bool {
            guard let cleanedUpAt else { return true }
            return now - cleanedUpAt >= 1_000_000
        }
    }

    private static let minute: Int64 = 60_000_000

    /// Beyond this number of addresses within a minute, new addresses share one budget, so that a client with many
    /// addresses cannot fill the memory.
    private static let maximumAddresses = 65_536
    private static let sharedKey = "all others"

    private let interval: Int64
    private let time: any TimeSource
    private let state = Mutex(State())

    /// - Precondition: `perMinute` is positive.
    package init(perMinute: Int, time: any TimeSource = SystemTime()) {
        precondition(perMinute > 0, "perMinute must be positive")
        interval = max(1, Self.minute / Int64(perMinute))
        self.time = time
    }

    /// Spends one request of the address.
    ///
    /// Returns `nil` if the request is allowed, else the time until the next one is.
    package func take(address: String) -> Duration? {
        let block = NetworkAddress(address)?.limitBlock.description ?? address
        let now = time.sinceBoot.milliseconds * 1000
        return state.withLock { state in
            let key = Self.key(for: block, at: now, in: &state)
            let fullAt = max(state.fullAt[key] ?? now, now)
            let wait = fullAt + interval - now - Self.minute
            guard wait <= 0 else { return .microseconds(wait) }
            state.fullAt[key] = fullAt + interval
            return nil
        }
    }

    /// Gives a request back to the address, because this budget does not apply to it.
    package func refund(address: String) {
        let block = NetworkAddress(address)?.limitBlock.description ?? address
        state.withLock { state in
            let key = state.fullAt[block] == nil ? Self.sharedKey : block
            if let fullAt = state.fullAt[key] { state.fullAt[key] = fullAt - interval }
        }
    }

    private static func key(for block: String, at now: Int64, in state: inout State) -> String {
        guard state.fullAt[block] == nil, state.fullAt.count >= maximumAddresses else { return block }
        // A pass over all addresses for each request would let an attacker hold the lock.
        if state.mayCleanUp(at: now) {
            state.cleanedUpAt = now
            state.fullAt = state.fullAt.filter { $0.value > now }
        }
        return state.fullAt.count >= maximumAddresses ? sharedKey : block
    }
}
