package import Base
internal import HTTPServer

/// The limits on requests of one address to the public routes.
///
/// Many phones share the address of their network, so only failures have a small limit: an honest phone rarely fails to
/// sign in, and a client that guesses tokens almost always fails.
///
///     try budgets.spendWrite(request)                            // for a request that writes
///     try await budgets.signIn(request) { try await … }          // for one that can fail to sign in
package struct RequestBudgets: Sendable {
    /// An address can make so many successful sign-ins, or writes, for each failure.
    static let successesPerFailure = 10

    /// Sign-ins and connections that the worker or Google refuses.
    let failures: AddressBudget
    /// All sign-ins and connections: each costs two calls to Google.
    let signIns: AddressBudget
    /// Requests that rotate a token, or end a grant, a session or a user.
    let writes: AddressBudget

    package init(failuresPerMinute: Int, time: any TimeSource) {
        let perMinute = Self.successesPerFailure * failuresPerMinute
        self.init(
            failuresPerMinute: failuresPerMinute,
            signInsPerMinute: perMinute,
            writesPerMinute: perMinute,
            time: time
        )
    }

    init(failuresPerMinute: Int, signInsPerMinute: Int, writesPerMinute: Int, time: any TimeSource) {
        failures = AddressBudget(perMinute: failuresPerMinute, time: time)
        signIns = AddressBudget(perMinute: signInsPerMinute, time: time)
        writes = AddressBudget(perMinute: writesPerMinute, time: time)
    }

    /// Counts a request that can cost a write to the store, and throws if its address has made too many.
    func spendWrite(_ request: ServerRequest) throws(AppError) {
        try Self.take(from: writes, for: request)
    }

    /// Runs a sign-in, and counts it as failed if it is refused.
    ///
    /// It counts as failed until it has succeeded: otherwise one address could have any number of guesses in progress
    /// at once. An outage of Google or of the store does not count as a failed sign-in.
    func signIn(
        _ request: ServerRequest,
        _ body: () async throws -> ServerResponse
    ) async throws -> ServerResponse {
        try Self.take(from: signIns, for: request)
        try Self.take(from: failures, for: request)
        do {
            let response = try await body()
            failures.refund(address: request.clientAddress)
            return response
        } catch {
            if !Self.isFaultOfCaller(error) { failures.refund(address: request.clientAddress) }
            throw error
        }
    }

    private static func take(from budget: AddressBudget, for request: ServerRequest) throws(AppError) {
        if let wait = budget.take(address: request.clientAddress) { throw .tooManyRequests(retryAfter: wait) }
    }

    private static func isFaultOfCaller(_ error: any Error) -> Bool {
        // An honest phone might have kept a genuine token for too long.
        guard let error = error as? AppError, error != .expiredToken else { return false }
        return (400..<500).contains(PayPulseErrorForm(error).status)
    }
}
