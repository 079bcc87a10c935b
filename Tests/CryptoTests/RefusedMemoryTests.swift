import Glibc
import Testing

@testable import Crypto

@Suite("Memory that is refused to OpenSSL")
struct RefusedMemoryTests {
    @Test("once, at any allocation, does not make a token unreadable")
    func once() async {
        await #expect(processExitsWith: .exitCode(0)) {
            RefusedMemory.begin()
            let context = SealContext(owner: 42, column: "refresh_token")
            let ring = try KeyRing(keys: [.random()])
            let sealed = try ring.seal(Secret("1//a-refresh-token"), for: context)
            RefusedMemory.allocations = 0
            #expect(try ring.open(sealed, for: context).reveal() == "1//a-refresh-token")
            let allocations = RefusedMemory.allocations
            #expect(allocations > 0)
            for number in 1...max(1, allocations) {
                RefusedMemory.refuse(from: number, count: 1)
                #expect(try ring.open(sealed, for: context).reveal() == "1//a-refresh-token", "allocation \(number)")
            }
        }
    }

    enum Verdict: String, CaseIterable, Codable {
        case token, signature
    }

    @Test("for longer ends the process, and is no verdict on a token or a signature", arguments: Verdict.allCases)
    func always(verdict: Verdict) async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [verdict] in
            RefusedMemory.begin()
            switch verdict {
            case .token:
                let context = SealContext(owner: 42, column: "refresh_token")
                let ring = try KeyRing(keys: [.random()])
                let sealed = try ring.seal(Secret("1//a-refresh-token"), for: context)
                RefusedMemory.refuse(from: 1, count: .max)
                _ = try? ring.open(sealed, for: context)
            case .signature:
                let key = try RSAPrivateKey.generate()
                let numbers = try key.publicNumbers()
                let publicKey = try PublicKey(modulus: numbers.modulus, exponent: numbers.exponent)
                let signature = try key.sign([1, 2, 3])
                RefusedMemory.refuse(from: 1, count: .max)
                _ = publicKey.verifies(signature: signature, of: [1, 2, 3])
            }
            _exit(0)
        }
        let message = try #require(result).standardErrorContent
        #expect(String(decoding: message, as: UTF8.self).contains("is the memory used up?"))
    }
}

/// The allocations of OpenSSL in this process, some of which are refused.
private enum RefusedMemory {
    nonisolated(unsafe) static var allocations = 0
    private nonisolated(unsafe) static var first = Int.max
    private nonisolated(unsafe) static var count = 0

    static func refuse(from number: Int, count: Int) {
        (allocations, first, self.count) = (0, number, count)
    }

    static var isRefused: Bool {
        allocations += 1
        return allocations >= first && allocations - first < count
    }

    /// Replaces the functions that OpenSSL allocates with.
    ///
    /// It must come before the first use of OpenSSL (https://docs.openssl.org/3.0/man3/OPENSSL_malloc/).
    static func begin() {
        typealias Allocate = @convention(c) (Int, UnsafePointer<CChar>?, Int32) -> UnsafeMutableRawPointer?
        typealias Reallocate =
            @convention(c) (UnsafeMutableRawPointer?, Int, UnsafePointer<CChar>?, Int32) -> UnsafeMutableRawPointer?
        typealias Free = @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int32) -> Void
        typealias Replace = @convention(c) (Allocate, Reallocate, Free) -> Int32
        let replace = unsafeBitCast(dlsym(nil, "CRYPTO_set_mem_functions"), to: Replace.self)
        let result = replace(
            { size, _, _ in RefusedMemory.isRefused ? nil : malloc(size) },
            { block, size, _, _ in RefusedMemory.isRefused ? nil : realloc(block, size) },
            { block, _, _ in free(block) }
        )
        precondition(result == 1)
    }
}
