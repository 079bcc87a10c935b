internal import Foundation

extension AccountClient {
    /// The present state and each later one, until the client ends. A reader that is slow gets the newest state. There
    /// is none before the token store can be read. With the app's own session, the state is that of the last call.
    ///
    /// ``sessionChanges`` also has the user, and the cause.
    public nonisolated var sessionStates: AsyncStream<SessionState> {
        stream { .states($0) }
    }

    /// The present user and each later one, with the cause of each change, until the client ends.
    ///
    /// A reader that is slow gets the newest one. There is none before the token store can be read. With the app's own
    /// session, it is that of the last call.
    public nonisolated var sessionChanges: AsyncStream<SessionChange> {
        stream { .changes($0) }
    }

    private nonisolated func stream<Element: Sendable>(
        of observer: @escaping @Sendable (AsyncStream<Element>.Continuation) -> SessionObserver
    ) -> AsyncStream<Element> {
        let id = UUID()
        return AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let adding = Task { await self.add(observer(continuation), as: id) }
            continuation.onTermination = { [weak self] _ in
                Task {
                    await adding.value
                    await self?.removeObserver(id)
                }
            }
        }
    }

    private func add(_ observer: SessionObserver, as id: UUID) async {
        do {
            _ = try await currentToken()
        } catch {
            // The reading itself has published the state, unless the state is unknown.
        }
        observers.add(observer, as: id)
    }

    private func removeObserver(_ id: UUID) { observers.remove(id) }
}

/// The app's own session: returns its access token, a new one if asked, or nil if no user is signed in.
package typealias OwnSession = @Sendable (_ isRenewed: Bool) async throws -> String?

extension AccountClient {
    /// Returns the token of the app's own session, and notices if another user has signed in.
    func token(of session: OwnSession, isRenewed: Bool) async throws(AccountError) -> String {
        ownSessionCalls += 1
        let call = ownSessionCalls
        let token: String?
        do {
            token = try await session(isRenewed)
        } catch {
            throw .accessToken(error)
        }
        // Of two calls that overlap, the later one knows better who is signed in.
        let isLate = call < latestOwnSessionAnswer
        if !isLate {
            latestOwnSessionAnswer = call
            observers.publish(Self.change(ofOwnSessionTo: token))
        }
        guard let token else { throw .signedOut }
        if let user = TokenPair.user(of: token), user != ownUser {
            if isLate { throw .sessionReplaced }
            if ownUser != nil { leaveAccount(with: .sessionReplaced) }
            ownUser = user
        }
        return token
    }

    private static func change(ofOwnSessionTo token: String?) -> SessionChange {
        guard let token else { return SessionChange(state: .signedOut, user: nil, cause: .ownSession) }
        return SessionChange(state: .signedIn, user: TokenPair.currentUser(of: token), cause: .ownSession)
    }
}
