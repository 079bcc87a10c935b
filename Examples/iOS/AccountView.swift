import AccountClient
import GoogleSignIn
import SwiftUI

struct AccountView: View {
    @Environment(Session.self) private var session
    @State private var asksToDelete = false

    var body: some View {
        List {
            if let profile = session.profile {
                Section("Google") { connection(profile) }
            }
            if let failure = session.failure { Text(failure) }
            Section {
                Button("Sign out") {
                    run { account in
                        try await account.logout()
                        // Forgets the SDK's tokens. Its disconnect() would end the backend's access too.
                        GIDSignIn.sharedInstance.signOut()
                    }
                }
                Button("Delete account", role: .destructive) { asksToDelete = true }
            }
        }
        .task { await session.run() }
        .refreshable { await session.run() }
        .confirmationDialog("Delete your account?", isPresented: $asksToDelete, titleVisibility: .visible) {
            Button("Delete", role: .destructive) {
                run { account in
                    try await account.deleteAccount()
                    GIDSignIn.sharedInstance.signOut()
                }
            }
        }
    }

    @ViewBuilder
    private func connection(_ profile: AccountClient.Profile) -> some View {
        if profile.isConnected {
            LabeledContent("Connected", value: profile.defaultConnection?.googleEmail ?? "")
            Button("Disconnect") { run { account in try await account.disconnectGoogle() } }
        } else {
            if let message = profile.defaultConnection?.userMessage { Text(message) }
            Button("Connect Google") {
                run { account in
                    let presenter = try presenter()
                    _ = try await account.addScopes([neededScope]) { request in
                        try await askGoogle(request, presenter: presenter)
                    }
                }
            }
        }
    }

    private func run(_ calls: @escaping @MainActor (AccountClient) async throws -> Void) {
        Task { await session.run(calls) }
    }
}
