import AccountClient
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("The code of docs/app.md", .timeLimit(.minutes(10)))
struct DocumentTests {
    private static let read = "https://www.googleapis.com/auth/gmail.readonly"

    @Test(
        "The document shows the code that is compiled here",
        arguments: ["struct KeychainTokenStore", "func askGoogle"]
    )
    func quotes(code: String) throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let compiled = try String(
            contentsOf: folder.appendingPathComponent("Support/DocumentedApp.swift"),
            encoding: .utf8
        )
        let document = try String(contentsOf: folder.appendingPathComponent("../../docs/app.md"), encoding: .utf8)
        let blocks = document.components(separatedBy: "```swift\n").dropFirst().map { block in
            // This machine has no module Security.
            block.components(separatedBy: "```")[0].components(separatedBy: "import Security\n\n").last ?? ""
        }
        let block = try #require(blocks.first { $0.contains(code) })
        #expect(compiled.contains(block))
    }

    @Test("The Keychain store keeps, replaces and removes each token")
    func keychainStore() throws {
        let store = KeychainTokenStore()
        #expect(try store.load(.accessToken) == nil)
        try store.remove(.accessToken)
        for token in ["first", "second"] {
            try store.save(token, for: .accessToken)
            #expect(try store.load(.accessToken) == token)
            #expect(try store.load(.refreshToken) == nil)
        }
        let accessible = keychain.withLock { $0.values.map(\.accessible) }
        #expect(accessible == [kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly])
        try store.remove(.accessToken)
        #expect(try store.load(.accessToken) == nil)
    }

    @Test(
        "Gmail is connected with the SDK's call that works",
        .serialized,
        arguments: [
            // The first connection, a reconnection, and a scope that was withdrawn elsewhere.
            (isConnected: false, granted: [], remembered: nil, call: "signIn"),
            (false, [read], [read], "signIn"), (true, ["openid"], [read], "signIn"),
            (true, ["openid"], ["openid"], "addScopes"), (true, ["openid"], nil, "signIn"),
        ] as [(isConnected: Bool, granted: [String], remembered: [String]?, call: String)]
    )
    @MainActor
    func consent(isConnected: Bool, granted: [String], remembered: [String]?, call: String) async throws {
        let backend = try Backend { request in
            switch request.line {
            case "GET /v1/user/me": answer(GmailTests.profile(isConnected: isConnected, scopes: granted))
            case "POST /v1/auth/gmail-tokens": answer(GmailTests.stored(scope: Self.read), status: "201 Created")
            default: nil
            }
        }
        let store = InMemoryTokenStore()
        try backend.signIn(into: store)
        let account = try backend.client(store)
        GIDSignIn.sharedInstance.currentUser = remembered.map { GIDGoogleUser(grantedScopes: $0) }
        let presenter = UIViewController()
        let refused = try await account.addScopes([Self.read]) { request in
            try await askGoogle(request, presenter: presenter)
        }
        #expect(refused.isEmpty)
        #expect(GIDSignIn.sharedInstance.calls.last == call)
        let body = try #require(backend.requests.last?.body)
        #expect(body.contains(#""refresh_token":"refresh""#) && body.contains(#""refresh_token_expires_in":604800"#))
    }
}
