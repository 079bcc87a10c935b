import AccountClient
import GoogleSignIn
import SwiftUI

/// The backend's address, from Info.plist.
private let backend = Bundle.main.object(forInfoDictionaryKey: "BACKEND_BASE_URL") as? String ?? ""

@main
struct ExampleApp: App {
    @State private var session = Session(baseURL: backend)

    var body: some Scene {
        WindowGroup {
            RootView()
                .environment(session)
                .task { await session.follow() }
                // The SDK's currentUser is the hint and the base of the next consent. It is no session of this app.
                .task { _ = try? await GIDSignIn.sharedInstance.restorePreviousSignIn() }
                .onOpenURL { url in GIDSignIn.sharedInstance.handle(url) }
        }
    }
}

struct RootView: View {
    @Environment(Session.self) private var session

    var body: some View {
        switch session.state {
        case .signedIn: AccountView()
        case .signedOut: SignInView()
        case nil: ProgressView()
        }
    }
}
