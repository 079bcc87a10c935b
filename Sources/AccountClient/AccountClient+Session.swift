internal import Foundation

extension AccountClient {
    /// Whether a user is signed in.
    public enum SessionState: Hashable, Sendable {
        /// A user is signed in, as far as the app knows.
        case signedIn
        /// No user is signed in: show the sign-in.
        case signedOut
    }

    /// The present state and each later one, until the client ends. A reader that is slow gets the newest state. There
    /// is none before the token store can be read. With the app's own session, the state is that of the last call.
    public nonisolated var sessionStates: AsyncStream<SessionState> {
        let id = UUID()
        return AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let adding = Task { await self.add(continuation, as: id) }
            continuation.onTermination = { [weak self] _ in
                Task {
                    await adding.value
                    await self?.removeObserver(id)
                }
            }
        }
    }

    private func add(_ observer: AsyncStream<SessionState>.Continuation, as id: UUID) async {
        do {
            _ = try await currentToken()
        } catch {
            // The reading itself has published the state, unless the state is unknown.
        }
        observers.add(observer, as: id)
    }

    private func removeObserver(_ id: UUID) { observers.remove(id) }
}

/// The readers of ``AccountClient/sessionStates``.
struct SessionObservers {
    private var observers: [UUID: AsyncStream<AccountClient.SessionState>.Continuation] = [:]
    private var state: AccountClient.SessionState?

    mutating func publish(_ state: AccountClient.SessionState) {
        guard state != self.state else { return }
        self.state = state
        for observer in observers.values { observer.yield(state) }
    }

    mutating func add(_ observer: AsyncStream<AccountClient.SessionState>.Continuation, as id: UUID) {
        observers[id] = observer
        if let state { observer.yield(state) }
    }

    mutating func remove(_ id: UUID) { observers[id] = nil }

    func finish() {
        for observer in observers.values { observer.finish() }
    }
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
            observers.publish(token == nil ? .signedOut : .signedIn)
        }
        guard let token else { throw .signedOut }
        if let user = TokenPair.user(of: token), user != ownUser {
            if isLate { throw .sessionReplaced }
            if ownUser != nil { leaveAccount(with: .sessionReplaced) }
            ownUser = user
        }
        return token
    }
}
