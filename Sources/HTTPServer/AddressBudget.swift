package import Clocks
private import Synchronization

/// Limits the rate at which one address may request an expensive operation, such as a call to another service.
///
/// An address that has been quiet may use a minute's budget at once. After that it gets one request per share of the
/// minute (the generic cell rate algorithm, which stores one instant per address).
package final class AddressBudget: Sendable {
    private struct State {
        /// The microsecond of the boot clock at which each address has its whole budget again.
        var whole: [String: Int64] = [:]
        var forgottenAt: Int64?
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
    /// Returns `nil` if it is allowed, else the time until the next one.
    package func take(address: String) -> Duration? {
        let customer = NetworkAddress(address)?.customer.description ?? address
        let now = time.sinceBoot.milliseconds * 1000
        return state.withLock { state in
            let key = Self.key(for: customer, now, &state)
            let whole = max(state.whole[key] ?? now, now)
            let wait = whole + interval - now - Self.minute
            guard wait <= 0 else { return .microseconds(wait) }
            state.whole[key] = whole + interval
            return nil
        }
    }

    /// Returns a request to the address, because this budget turned out not to apply to it.
    package func putBack(address: String) {
        let customer = NetworkAddress(address)?.customer.description ?? address
        state.withLock { state in
            let key = state.whole[customer] == nil ? Self.sharedKey : customer
            if let whole = state.whole[key] { state.whole[key] = whole - interval }
        }
    }

    private static func key(for customer: String, _ now: Int64, _ state: inout State) -> String {
        guard state.whole[customer] == nil, state.whole.count >= maximumAddresses else { return customer }
        // A pass over all addresses for each request would let an attacker hold the lock.
        if state.forgottenAt.map({ now - $0 >= 1_000_000 }) ?? true {
            state.forgottenAt = now
            state.whole = state.whole.filter { $0.value > now }
        }
        return state.whole.count >= maximumAddresses ? sharedKey : customer
    }
}
