/// The requests in flight, and the callers that wait for each.
///
/// At most one request per subject is current: the one that new callers join, and whose token is kept. A request stops
/// being current when its user is forgotten or a token is refused meanwhile. Its callers still get its response.
struct SharedRequests {
    typealias Waiter = CheckedContinuation<Result<WorkerTokens.Token, TokenError>, Never>

    /// A request whose response has come.
    struct Finished {
        let demand: TokenDemand
        let isCurrent: Bool
        let waiters: [Waiter]
    }

    private struct Pending {
        let demand: TokenDemand
        var waiters: [Int: Waiter] = [:]
    }

    private var pending: [Int: Pending] = [:]
    private var current: [TokenSubject: Int] = [:]
    private var lastNumber = 0
    private var lastWaiter = 0

    var waitingCalls: Int { pending.values.reduce(0) { $0 + $1.waiters.count } }

    /// Returns the number of a request whose response is good for this demand too.
    func number(serving demand: TokenDemand) -> Int? {
        guard let number = current[demand.subject], let other = pending[number] else { return nil }
        return demand.isServed(by: other.demand) ? number : nil
    }

    mutating func begin(_ demand: TokenDemand) -> Int {
        lastNumber += 1
        pending[lastNumber] = Pending(demand: demand)
        current[demand.subject] = lastNumber
        return lastNumber
    }

    mutating func newWaiter() -> Int {
        lastWaiter += 1
        return lastWaiter
    }

    mutating func add(_ continuation: Waiter, as waiter: Int, to number: Int) {
        pending[number]?.waiters[waiter] = continuation
    }

    mutating func remove(_ waiter: Int) -> Waiter? {
        for number in pending.keys {
            if let continuation = pending[number]?.waiters.removeValue(forKey: waiter) { return continuation }
        }
        return nil
    }

    mutating func detach(user: String) {
        current = current.filter { !$0.key.isOf(user) }
    }

    mutating func finish(_ number: Int) -> Finished? {
        guard let finished = pending.removeValue(forKey: number) else { return nil }
        let isCurrent = current[finished.demand.subject] == number
        if isCurrent { current[finished.demand.subject] = nil }
        return Finished(
            demand: finished.demand,
            isCurrent: isCurrent,
            waiters: Array(finished.waiters.values)
        )
    }
}
