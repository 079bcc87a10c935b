import TestSupport
import Testing

@testable import Base
@testable import HTTPServer

@Suite("Addresses are read, compared and budgeted")
struct AddressTests {
    @Test(
        "The client is the last address that is not a trusted proxy",
        arguments: [
            ("10.1.1.1", ["192.0.2.7"], "192.0.2.7"),
            ("10.1.1.1", ["6.6.6.6, 192.0.2.7"], "192.0.2.7"),
            ("10.1.1.1", ["6.6.6.6", "192.0.2.7, 10.2.2.2"], "192.0.2.7"),
            ("::ffff:10.1.1.1", ["::ffff:192.0.2.7"], "192.0.2.7"),
            ("fd00::1", ["2001:db8::5"], "2001:db8::5"),
            ("10.1.1.1", ["[2001:db8::5]:4000"], "2001:db8::5"),
            ("10.1.1.1", ["192.0.2.7:4000"], "192.0.2.7"),
            ("10.1.1.1", ["192.0.2.7, unknown, 10.2.2.2"], "10.2.2.2"),
            ("10.1.1.1", ["192.0.2.7,"], "10.1.1.1"),
            ("10.1.1.1", [], "10.1.1.1"),
            ("10.1.1.1", ["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
            (
                "10.1.1.1",
                [
                    String(repeating: "192.0.2.7,", count: 1)
                        + Array(repeating: "10.9.9.9", count: 40).joined(separator: ",")
                ], "10.9.9.9"
            ),
        ] as [(String, [String], String)]
    )
    func forwarded(peer: String, values: [String], client: String) throws {
        let proxies = try TrustedProxies(["10.0.0.0/8", "fd00::/8"])
        let network = try #require(NetworkAddress(peer))
        #expect(proxies.client(behind: network, forwardedFor: values, forwarded: []).description == client)
    }

    @Test(
        "The client is the last node of Forwarded that is not a trusted proxy",
        arguments: [
            (["by=3.1.1.1;for=192.0.2.7;host=a.example;proto=https"], "192.0.2.7"),
            (["For=\"192.0.2.7:4711\""], "192.0.2.7"), (["for=\"[2001:db8::5]:4711\";by=_x"], "2001:db8::5"),
            (["for=2001:db8::5"], "2001:db8::5"), (["for=\"\\192.0.2.7\""], "192.0.2.7"),
            (["for=6.6.6.6, for=192.0.2.7 ; proto=http ,for=10.2.2.2"], "192.0.2.7"),
            (["for=6.6.6.6", "for=192.0.2.7"], "192.0.2.7"), (["for=192.0.2.7, for=unknown, for=10.2.2.2"], "10.2.2.2"),
            (["for=192.0.2.7, for=_hidden"], "10.1.1.1"), (["for=192.0.2.7, by=10.2.2.2"], "10.1.1.1"),
            // A proxy quotes the host that the client sent.
            (["for=192.0.2.7;host=\"x, for=6.6.6.6;a=\""], "192.0.2.7"),
            // The client opens a quote, which would hide what the proxy appends.
            (["for=\"6.6.6.6, for=192.0.2.7"], "10.1.1.1"), (["for=\"6.6.6.6, for=\"[2001:db8::5]\""], "10.1.1.1"),
            (["a=\"", "for=192.0.2.7"], "192.0.2.7"), (["for=192.0.2.7;for=6.6.6.6"], "10.1.1.1"),
            (["for"], "10.1.1.1"), (["for=\"192.0.2.7\\"], "10.1.1.1"), ([""], "10.1.1.1"),
        ] as [([String], String)]
    )
    func forwarded(values: [String], client: String) throws {
        let proxies = try TrustedProxies(["10.0.0.0/8"])
        let peer = try #require(NetworkAddress("10.1.1.1"))
        #expect(proxies.client(behind: peer, forwardedFor: [], forwarded: values).description == client)
    }

    @Test(
        "Of two headers, the one that names a client counts; two that differ are not believed",
        arguments: [
            ("6.6.6.6", "192.0.2.7", "10.1.1.1"), ("192.0.2.7", "192.0.2.7", "192.0.2.7"),
            ("10.2.2.2", "192.0.2.7", "192.0.2.7"), ("192.0.2.7", "10.2.2.2", "192.0.2.7"),
            ("192.0.2.7", "unknown", "192.0.2.7"),
        ]
    )
    func twoHeaders(forwardedFor: String, forwarded: String, client: String) throws {
        let proxies = try TrustedProxies(["10.0.0.0/8"])
        let peer = try #require(NetworkAddress("10.1.1.1"))
        let found = proxies.client(behind: peer, forwardedFor: [forwardedFor], forwarded: ["for=\(forwarded)"])
        #expect(found.description == client)
    }

    @Test(
        "A block contains its addresses and no others",
        arguments: [
            ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false), ("0.0.0.0/0", "8.8.8.8", true), ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "8.8.8.8", true), ("::ffff:10.0.0.0/104", "10.2.3.4", true), ("fd00::/8", "fdff::1", true),
            ("192.0.2.1/31", "192.0.2.0", true),
        ]
    )
    func block(block: String, address: String, isIn: Bool) throws {
        #expect(try TrustedProxies([block]).contains(#require(NetworkAddress(address))) == isIn)
    }

    @Test(
        "An invalid block is refused",
        arguments: [
            "", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/", "10.0.0/8", "localhost", "fe80::1%lo",
            "1.2.3.4/+8",
        ]
    )
    func badBlock(block: String) {
        #expect(throws: HTTPServerError.self) { try TrustedProxies([block]) }
    }

    @Test("A budget is spent at once or over its minute, and each address has its own")
    func budget() {
        let time = ManualTime()
        let budget = AddressBudget(perMinute: 4, time: time)
        for _ in 0..<4 { #expect(budget.take(address: "192.0.2.1") == nil) }
        #expect(budget.take(address: "192.0.2.1") == .seconds(15))
        #expect(budget.take(address: "192.0.2.2") == nil)
        time.advance(by: .seconds(14))
        #expect(budget.take(address: "192.0.2.1") == .seconds(1))
        time.advance(by: .seconds(1))
        #expect(budget.take(address: "192.0.2.1") == nil)
        #expect(budget.take(address: "192.0.2.1") == .seconds(15))
        time.advance(by: .seconds(600))
        for _ in 0..<4 { #expect(budget.take(address: "192.0.2.1") == nil) }
        #expect(budget.take(address: "192.0.2.1") == .seconds(15))
    }

    @Test("All addresses of a /64 share one budget")
    func budgetOfNetwork() {
        let budget = AddressBudget(perMinute: 1, time: ManualTime())
        #expect(budget.take(address: "2001:db8::1") == nil)
        #expect(budget.take(address: "2001:db8::ffff:1") == .seconds(60))
        #expect(budget.take(address: "2001:db8:0:1::1") == nil)
    }

    @Test("Beyond the maximum, new addresses share a budget until others are removed")
    func manyAddresses() {
        let time = ManualTime()
        let budget = AddressBudget(perMinute: 1, time: time)
        for number in 0..<65_536 { _ = budget.take(address: "10.\(number >> 8).\(number & 255).1") }
        // The first of the excess addresses spends the shared budget.
        #expect(budget.take(address: "192.0.2.1") == nil)
        #expect(budget.take(address: "192.0.2.2") == .seconds(60))
        time.advance(by: .seconds(61))
        #expect(budget.take(address: "192.0.2.1") == nil)
        #expect(budget.take(address: "192.0.2.2") == nil)
    }

    @Test(
        "An address to listen on is read, or refused",
        arguments: [
            ("127.0.0.1:8080", .tcp(address: "127.0.0.1", port: 8080)), ("[::1]:80", .tcp(address: "::1", port: 80)),
            ("unix:/run/x.sock", .unix(path: "/run/x.sock", mode: 0o600)), ("::1:80", nil), ("127.0.0.1", nil),
            ("127.0.0.1:", nil), ("127.0.0.1:65536", nil), ("127.0.0.1:+1", nil), ("localhost:80", nil),
            ("[127.0.0.1]:80", nil), ("unix:", nil), ("unix:relative", nil), ("", nil), (":80", nil),
            ("unix:/" + String(repeating: "a", count: 107), nil),
        ] as [(String, ListenAddress?)]
    )
    func listen(text: String, address: ListenAddress?) {
        #expect(ListenAddress(text) == address)
    }
}
