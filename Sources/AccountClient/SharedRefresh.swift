/// A refresh in progress, and the calls that wait for it.
struct SharedRefresh {
    typealias Waiter = CheckedContinuation<Result<String, AccountError>, Never>

    let number: Int
    var waiters: [Int: Waiter] = [:]
}
