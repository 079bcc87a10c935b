package import Clocks
private import Synchronization

/// How often one address may ask for something that is dear, such as a call to somebody else's service.
///
/// An address that has been quiet may spend its minute's worth at once; from then on it gets one request each time that its
/// share of the minute has passed (the generic cell rate algorithm: one instant per address is all there is to keep).
package final class AddressBudget: Sendable {
    private struct State {
        /// For each address, the boot clock's microsecond at which its whole budget will be back.
        var whole: [String: Int64] = [:]
        var forgottenAt: Int64?
    }

    private static let minute: Int64 = 60_000_000

    /// More addresses than this within a minute share one budget: a stranger with many must not fill the memory.
    private static let maximumAddresses = 65_536
    private static let sharedKey = "all others"

    private let interval: Int64
    private let time: any TimeSource
    private let state = Mutex(State())

    /// - Precondition: `perMinute` is positive.
    package init(perMinute: Int, time: any TimeSource = SystemTime()) {
        precondition(perMinute > 0, "a budget of nothing is no budget")
        interval = max(1, Self.minute / Int64(perMinute))
        self.time = time
    }

    /// Spends one request of the address's; nil to go on, else the time after which the next one is granted.
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

    /// Returns a request to the address: it turned out not to be one that this budget limits.
    package func putBack(address: String) {
        let customer = NetworkAddress(address)?.customer.description ?? address
        state.withLock { state in
            let key = state.whole[customer] == nil ? Self.sharedKey : customer
            if let whole = state.whole[key] { state.whole[key] = whole - interval }
        }
    }

    private static func key(for customer: String, _ now: Int64, _ state: inout State) -> String {
        guard state.whole[customer] == nil, state.whole.count >= maximumAddresses else { return customer }
        // A walk over all addresses for each request would be a way to keep the lock from everybody else.
        if state.forgottenAt.map({ now - $0 >= 1_000_000 }) ?? true {
            state.forgottenAt = now
            state.whole = state.whole.filter { $0.value > now }
        }
        return state.whole.count >= maximumAddresses ? sharedKey : customer
    }
}
