/// The proxies whose word about their clients is taken: address blocks such as "10.0.0.0/8", "fd00::/8" or "127.0.0.1".
package struct TrustedProxies: Sendable {
    private struct Block: Sendable {
        let bits: UInt128
        let prefix: Int

        init?(_ text: String) {
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let address = NetworkAddress(parts[0]) else { return nil }
            // A prefix counts the bits of the family it was written in, and ::ffff:0:0/96 is all of IPv4.
            let width = parts[0].contains(":") ? 128 : 32
            var length = width
            if parts.count == 2 {
                guard let written = Int(parts[1]), parts[1].allSatisfy(\.isNumber), (0...width).contains(written) else {
                    return nil
                }
                length = written
            }
            prefix = length + 128 - width
            bits = address.bits
        }

        func contains(_ address: NetworkAddress) -> Bool {
            (bits ^ address.bits) >> UInt128(128 - prefix) == 0
        }
    }

    /// How many of the proxies that a request claims to have passed are looked at.
    private static let maximumHops = 32

    private let blocks: [Block]

    /// Nobody is trusted.
    package static let none = TrustedProxies()

    private init() {
        blocks = []
    }

    package init(_ blocks: [String]) throws(HTTPServerError) {
        var read: [Block] = []
        for text in blocks {
            guard let block = Block(text) else {
                throw HTTPServerError(
                    code: .badAddress,
                    message: "\(text) is no IPv4 or IPv6 address or block, such as 10.0.0.0/8",
                    systemError: 0
                )
            }
            read.append(block)
        }
        self.blocks = read
    }

    func contains(_ address: NetworkAddress) -> Bool {
        blocks.contains { $0.contains(address) }
    }

    /// Who sent a request that came from a trusted proxy: each proxy has added the address it saw at the end of
    /// X-Forwarded-For, so the last one that is not a trusted proxy's is the client, and what stands before it is hearsay.
    ///
    /// What cannot be read ends the search at the proxy that wrote it.
    func client(behind peer: NetworkAddress, forwardedFor values: [String]) -> NetworkAddress {
        var client = peer
        var hops = 0
        for value in values.reversed() {
            for entry in value.split(separator: ",", omittingEmptySubsequences: false).reversed() {
                hops += 1
                guard hops <= Self.maximumHops, let address = Self.address(entry) else { return client }
                client = address
                guard contains(address) else { return client }
            }
        }
        return client
    }

    /// An entry's address; some proxies add the client's port to it.
    private static func address(_ entry: Substring) -> NetworkAddress? {
        let spaces: Set<Character> = [" ", "\t"]
        var text = entry.drop { spaces.contains($0) }
        while let last = text.last, spaces.contains(last) { text.removeLast() }
        if text.first == "[", let end = text.firstIndex(of: "]") {
            let rest = text[text.index(after: end)...]
            guard rest.isEmpty || rest.first == ":" else { return nil }
            return NetworkAddress(text[text.index(after: text.startIndex)..<end])
        }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        return NetworkAddress(parts.count == 2 ? parts[0] : text)
    }
}
