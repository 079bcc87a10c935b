import AccountClient
import Foundation
import Security
import Synchronization
import Testing

@Suite("The Keychain store", .serialized)
struct KeychainTokenStoreTests {
    init() { Keychain.shared.withLock { $0 = Keychain() } }

    @Test("Each token is kept, replaced and removed")
    func tokens() throws {
        let store = KeychainTokenStore()
        #expect(try store.load(.accessToken) == nil)
        try store.remove(.accessToken)
        for token in ["first", "second"] {
            try store.save(token, for: .accessToken)
            #expect(try store.load(.accessToken) == token)
            #expect(try store.load(.refreshToken) == nil)
        }
        try store.save("other", for: .refreshToken)
        try store.remove(.accessToken)
        #expect(try store.load(.accessToken) == nil)
        #expect(try store.load(.refreshToken) == "other")
    }

    @Test("Tokens can be read in the background, also those that an older version of the app stored")
    func accessibility() throws {
        let former = Keychain.Item(data: Data("former".utf8), accessible: "ak")
        Keychain.shared.withLock { $0.items["/account/ce.refresh_token"] = former }
        let store = KeychainTokenStore()
        #expect(try store.load(.refreshToken) == "former")
        for key in TokenKey.allCases { try store.save("new", for: key) }
        let accessible = Keychain.shared.withLock { $0.items.values.map(\.accessible) }
        #expect(accessible == Array(repeating: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, count: 2))
    }

    @Test("Services and access groups are apart")
    func names() throws {
        try KeychainTokenStore(service: "one").save("1", for: .accessToken)
        try KeychainTokenStore(service: "one", accessGroup: "group").save("2", for: .accessToken)
        #expect(try KeychainTokenStore(service: "two").load(.accessToken) == nil)
        let names = Keychain.shared.withLock { $0.items.keys.sorted() }
        #expect(names == ["/one/ce.access_token", "group/one/ce.access_token"])
    }

    @Test("A locked Keychain is an error, not a missing token")
    func failure() throws {
        let store = KeychainTokenStore()
        try store.save("token", for: .accessToken)
        // errSecInteractionNotAllowed, before the device was unlocked once.
        Keychain.shared.withLock { $0.failure = -25_308 }
        let error = NSError(domain: NSOSStatusErrorDomain, code: -25_308)
        #expect(throws: error) { try store.load(.accessToken) }
        #expect(throws: error) { try store.save("new", for: .accessToken) }
        #expect(throws: error) { try store.remove(.accessToken) }
        Keychain.shared.withLock { $0.failure = nil }
        #expect(try store.load(.accessToken) == "token")
    }

    @Test("Of two processes that share the tokens, one at a time compares and writes")
    func lock() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        let store = KeychainTokenStore(lock: file)
        // Each opened file has a lock of its own, so this one stands for another process.
        func isFree() -> Bool {
            let other = open(file.path, O_RDWR)
            defer { close(other) }
            return flock(other, LOCK_EX | LOCK_NB) == 0
        }
        #expect(try store.exclusively { isFree() } == false)
        #expect(isFree())
    }
}
