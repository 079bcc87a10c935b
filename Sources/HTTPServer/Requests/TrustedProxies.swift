private import Base

/// The proxies whose forwarding headers are trusted, as address blocks such as "10.0.0.0/8", "fd00::/8" or "127.0.0.1".
package struct TrustedProxies: Sendable {
    private struct Block: Sendable {
        let bits: UInt128
        let prefix: Int

        init?(_ text: String) {
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let address = NetworkAddress(parts[0]) else { return nil }
            // A prefix counts the bits of the family in which it was written. ::ffff:0:0/96 covers all of IPv4.
            let width = parts[0].contains(":") ? 128 : 32
            guard parts.count == 2 else {
                self.init(bits: address.bits, prefix: 128)
                return
            }
            guard parts[1].isDecimalNumber, let length = Int(parts[1]), length <= width else { return nil }
            self.init(bits: address.bits, prefix: length + 128 - width)
        }

        private init(bits: UInt128, prefix: Int) {
            self.bits = bits
            self.prefix = prefix
        }

        func contains(_ address: NetworkAddress) -> Bool {
            (bits ^ address.bits) >> UInt128(128 - prefix) == 0
        }
    }

    /// The maximum number of forwarding entries that are examined.
    private static let maximumHops = 32

    private let blocks: [Block]

    package static let none = TrustedProxies(blocks: [])
}

extension TrustedProxies {
    package init(_ blocks: [String]) throws(HTTPServerError) {
        var parsed: [Block] = []
        for text in blocks {
            guard let block = Block(text) else {
                let message = "\(text) is not an IPv4 or IPv6 address or block, such as 10.0.0.0/8"
                throw HTTPServerError(code: .badAddress, message: message)
            }
            parsed.append(block)
        }
        self.blocks = parsed
    }

    func contains(_ address: NetworkAddress) -> Bool {
        blocks.contains { $0.contains(address) }
    }

    /// Returns the sender of a request from a trusted proxy, by its `X-Forwarded-For` and `Forwarded` headers.
    ///
    /// Each proxy appends the address it saw to one of them, and might pass the other one on as the client sent it. If
    /// one of them names only proxies, the other one was written further out and names the sender. If they name
    /// different senders, neither is believed, and the request counts as the peer's.
    func client(behind peer: NetworkAddress, forwardedFor: [String], forwarded: [String]) -> NetworkAddress {
        let entries = forwardedFor.reversed().lazy.flatMap {
            $0.split(separator: ",", omittingEmptySubsequences: false).reversed()
        }
        let nodes = forwarded.reversed().lazy.flatMap {
            // An entry that cannot be read stands for a malformed header.
            (ForwardedHeader.nodes(of: $0) ?? [""]).reversed().map { Substring($0) }
        }
        let clientByEntries = client(behind: peer, latestFirst: entries)
        let clientByNodes = client(behind: peer, latestFirst: nodes)
        if forwarded.isEmpty { return clientByEntries }
        if forwardedFor.isEmpty { return clientByNodes }
        // Both headers are there. One that names only proxies yields to the other one.
        if contains(clientByNodes) { return clientByEntries }
        if contains(clientByEntries) { return clientByNodes }
        return clientByEntries == clientByNodes ? clientByEntries : peer
    }

    /// Returns the last entry that is not a trusted proxy.
    ///
    /// The entries before it can be forged. An unreadable entry ends the search at the proxy that wrote it.
    private func client(behind peer: NetworkAddress, latestFirst entries: some Sequence<Substring>) -> NetworkAddress {
        var client = peer
        for entry in entries.prefix(Self.maximumHops) {
            guard let address = Self.address(entry) else { return client }
            client = address
            guard contains(address) else { return client }
        }
        return client
    }

    /// Reads an entry's address.
    ///
    /// Some proxies add the client's port to it.
    private static func address(_ entry: Substring) -> NetworkAddress? {
        let text = Substring(entry.utf8.trimmingBlanks)
        if text.first == "[", let end = text.firstIndex(of: "]") {
            let rest = text[text.index(after: end)...]
            guard rest.isEmpty || rest.first == ":" else { return nil }
            return NetworkAddress(text[text.index(after: text.startIndex)..<end])
        }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        return NetworkAddress(parts.count == 2 ? parts[0] : text)
    }
}
