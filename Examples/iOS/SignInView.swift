import SwiftUI

struct SignInView: View {
    @Environment(Session.self) private var session

    var body: some View {
        List {
            Button("Continue with Google") {
                Task { await session.run { account in try await signIn(to: account, presenter: presenter()) } }
            }
            if let failure = session.failure { Text(failure) }
        }
    }
}
