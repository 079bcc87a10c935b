import Crypto
import Dispatch
import HTTPClient
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth

@Suite("A cache of keys", .timeLimit(.minutes(10)))
struct KeySetCacheTests {
    private func withIssuer(_ body: (SecurityEventIssuer) async throws -> Void) async throws {
        let issuer = try SecurityEventIssuer()
        try await body(issuer)
        try issuer.stop()
    }

    @Test("are fetched once for many concurrent callers")
    func singleFlight() async throws {
        try await withIssuer { issuer in
            let keys = try issuer.keys()
            try await withThrowingTaskGroup { group in
                for _ in 0..<50 {
                    group.addTask {
                        let found = try await keys.key(id: "key-1")
                        #expect(found.key != nil)
                        #expect(found.issuer == SecurityEventIssuer.name)
                    }
                }
                try await group.waitForAll()
            }
            #expect(try issuer.fetches == 1)
        }
    }

    @Test(
        "are fetched again when the lifetime from the answer is over",
        arguments: [
            ("max-age=7200", 7200), ("public, max-age=1", 300), ("max-age=9999999", 86_400), ("no-store", 3600),
            ("max-age=x", 3600),
        ]
    )
    func age(cacheControl: String, seconds: Int) async throws {
        try await withIssuer { issuer in
            issuer.setCacheControl(cacheControl)
            let keys = try issuer.keys()
            _ = try await keys.key(id: "key-1")
            issuer.time.advance(by: .seconds(seconds - 1))
            _ = try await keys.key(id: "key-1")
            #expect(try issuer.fetches == 1)
            issuer.time.advance(by: .seconds(1))
            _ = try await keys.key(id: "key-1")
            // Each fetch is two requests.
            try await issuer.server.waitForRequests(4)
            #expect(try issuer.fetches == 2)
        }
    }

    @Test("with a known id are used at once while newer ones are fetched")
    func staleWhileFetching() async throws {
        try await withIssuer { issuer in
            let keys = try issuer.keys()
            _ = try await keys.key(id: "key-1")
            let gate = DispatchSemaphore(value: 0)
            issuer.hold(until: gate)
            try issuer.addKey("key-2")
            issuer.time.advance(by: .seconds(3600))
            #expect(try await keys.key(id: "key-1").key != nil)
            try await issuer.server.waitForRequests(3)
            issuer.hold(until: nil)
            gate.signal()
            // The fetch has not failed: nothing waited for its deadline.
            #expect(try await keys.key(id: "key-2").key != nil)
        }
    }

    @Test("are fetched again for an unknown id, at most once a minute, and only a fetch shows that it is unknown")
    func unknownID() async throws {
        try await withIssuer { issuer in
            let keys = try issuer.keys()
            #expect(try await keys.key(id: "key-2").key == nil)
            try issuer.addKey("key-2")
            issuer.time.advance(by: .seconds(20))
            for _ in 0..<20 {
                await #expect(throws: KeySetCache.Unavailable(retryAfter: .seconds(40))) {
                    try await keys.key(id: "key-2")
                }
            }
            #expect(try issuer.fetches == 1)
            issuer.time.advance(by: .seconds(40))
            #expect(try await keys.key(id: "key-2").key != nil)
            #expect(try await keys.key(id: "key-1").key != nil)
            #expect(try issuer.fetches == 2)
            issuer.time.advance(by: .seconds(60))
            #expect(try await keys.key(id: "key-3").key == nil)
            #expect(try issuer.fetches == 3)
        }
    }

    @Test("are used for two days while the issuer is unreachable; unknown keys are then not refused")
    func outage() async throws {
        try await withIssuer { issuer in
            issuer.setCacheControl("max-age=86400")
            let keys = try issuer.keys()
            _ = try await keys.key(id: "key-1")
            issuer.setUnavailable(true)
            issuer.time.advance(by: .seconds(86_401))
            #expect(try await keys.key(id: "key-1").key != nil)
            await #expect(throws: KeySetCache.Unavailable(retryAfter: .seconds(10))) {
                try await keys.key(id: "key-2")
            }
            issuer.time.advance(by: .seconds(2 * 86_400 - 86_401))
            await #expect(throws: KeySetCache.Unavailable.self) { try await keys.key(id: "key-1") }
            issuer.setUnavailable(false)
            issuer.time.advance(by: .seconds(10))
            #expect(try await keys.key(id: "key-1").key != nil)
        }
    }

    @Test("that could not be fetched are unavailable, and requested again after ten seconds")
    func neverReached() async throws {
        try await withIssuer { issuer in
            issuer.setUnavailable(true)
            let keys = try issuer.keys()
            for _ in 0..<5 {
                await #expect(throws: KeySetCache.Unavailable(retryAfter: .seconds(10))) {
                    try await keys.key(id: "key-1")
                }
            }
            #expect(try issuer.server.received.count == 1)
            issuer.setUnavailable(false)
            issuer.time.advance(by: .seconds(10))
            #expect(try await keys.key(id: "key-1").key != nil)
        }
    }

    @Test(
        "are not fetched from an address that is neither https nor this machine",
        arguments: [
            "http://evil.example/certs", "file:///etc/passwd", "",
        ]
    )
    func address(text: String) async throws {
        try await withIssuer { issuer in
            issuer.setKeyAddress(text)
            let keys = try issuer.keys()
            await #expect(throws: KeySetCache.Unavailable.self) { try await keys.key(id: "key-1") }
        }
    }
}

@Suite("A cache of keys without a server")
struct KeySetFileTests {
    @Test(
        "reads a file again after five minutes, or after a minute for an unknown id, and keeps its keys if it is gone"
    )
    func file() async throws {
        let numbers = try TestKeys.key(0).publicNumbers()
        let time = ManualTime()
        let ids = Mutex(["a"])
        let reads = Mutex(0)
        let modulus = Base64URL.encode(numbers.modulus)
        let keys = KeySetCache(
            .file {
                reads.withLock { $0 += 1 }
                guard !ids.withLock(\.isEmpty) else { throw CancellationError() }
                let entries = ids.withLock { $0.map { #"{"kty":"RSA","kid":"\#($0)","n":"\#(modulus)","e":"AQAB"}"# } }
                return Array(#"{"keys":[\#(entries.joined(separator: ","))]}"#.utf8)
            },
            http: try HTTPClient(),
            time: time
        )
        #expect(try await keys.key(id: "a").key != nil)
        ids.withLock { $0 = ["a", "b"] }
        await #expect(throws: KeySetCache.Unavailable(retryAfter: .seconds(60))) { try await keys.key(id: "b") }
        time.advance(by: .seconds(60))
        #expect(try await keys.key(id: "b").key != nil)
        time.advance(by: .seconds(299))
        #expect(try await keys.key(id: "a").issuer == nil)
        #expect(reads.withLock { $0 } == 2)
        ids.withLock { $0 = [] }
        time.advance(by: .seconds(1))
        #expect(try await keys.key(id: "a").key != nil)
        await #expect(throws: KeySetCache.Unavailable(retryAfter: .seconds(10))) { try await keys.key(id: "c") }
        #expect(reads.withLock { $0 } == 3)
    }
}
