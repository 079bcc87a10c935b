extension AccountClient {
    /// Whether a user is signed in.
    public enum SessionState: Hashable, Sendable {
        /// A user is signed in, as far as the app knows.
        case signedIn
        /// No user is signed in: show the sign-in.
        case signedOut
    }

    /// Who is signed in now, and why that changed.
    ///
    ///     for await change in client.sessionChanges {
    ///         switch change.state {
    ///         case .signedIn: showHome(of: change.user)
    ///         case .signedOut: showSignIn(because: change.cause == .sessionEnded ? "Please sign in again." : nil)
    ///         }
    ///     }
    public struct SessionChange: Hashable, Sendable {
        /// Why the session is as it is. A later version can have more causes.
        public struct Cause: Hashable, Sendable {
            private enum Name: String {
                case start
                case signIn
                case unsavedSignIn
                case logout
                case accountDeletion
                case sessionEnded
                case otherProcess
                case refresh
                case ownSession
            }

            private let name: Name

            /// This is what the token store held when the client read it first.
            public static let start = Cause(name: .start)
            /// A user signed in by this client.
            public static let signIn = Cause(name: .signIn)
            /// A sign-in could not be saved, so no user is signed in.
            public static let unsavedSignIn = Cause(name: .unsavedSignIn)
            /// The app called ``AccountClient/logout()``.
            public static let logout = Cause(name: .logout)
            /// The app called ``AccountClient/deleteAccount()``.
            public static let accountDeletion = Cause(name: .accountDeletion)
            /// The server has ended the session: it expired, was ended on another device or by an operator, or a copy of
            /// its tokens was used.
            public static let sessionEnded = Cause(name: .sessionEnded)
            /// Another process that shares the token store signed in or out.
            public static let otherProcess = Cause(name: .otherProcess)
            /// A refresh named the user differently: the address has changed, or the server has joined two users of one
            /// person.
            public static let refresh = Cause(name: .refresh)
            /// The app's own session said so.
            public static let ownSession = Cause(name: .ownSession)
        }

        /// Whether a user is signed in.
        public let state: SessionState
        /// The signed-in user, or nil: then no user is signed in, or the tokens do not say whose they are.
        public let user: CurrentUser?
        /// Why it changed.
        public let cause: Cause
    }
}

extension AccountClient.SessionChange.Cause: CustomStringConvertible {
    /// The name of the cause, for a log.
    public var description: String { name.rawValue }
}
