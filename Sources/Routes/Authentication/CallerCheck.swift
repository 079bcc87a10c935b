internal import Base
internal import HTTPServer
internal import Storage

/// The authentication of callers by their access tokens.
///
///     let caller = try await CallerCheck(dependencies: dependencies).caller(of: request)
struct CallerCheck: Sendable {
    let dependencies: AppRoutes.Dependencies

    /// Returns the caller of a request, or throws an ``AppError`` or an error of the store.
    func caller(of request: ServerRequest) async throws -> AuthenticatedCaller {
        try await dependencies.tokens.caller(presenting: try request.bearerToken())
    }

    /// Returns the user of a request, and stores a user who is not stored yet.
    func user(of request: ServerRequest) async throws -> User {
        let caller = try await caller(of: request)
        if let user = caller.storedUser { return user }
        try dependencies.budgets.spendWrite(request)
        let now = dependencies.time.now
        return try await dependencies.store.transact { try caller.storeUser(in: $0, at: now) }
    }
}
