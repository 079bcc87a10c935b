import Crypto
import Testing

@Suite("A key for messages")
struct MessageKeyTests {
    /// The test cases of RFC 4231, section 4, except the one with a truncated code.
    @Test(
        "computes the codes of RFC 4231",
        arguments: [
            (
                [UInt8](repeating: 0x0b, count: 20), Array("Hi There".utf8),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
            ),
            (
                Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                [UInt8](repeating: 0xaa, count: 20), [UInt8](repeating: 0xdd, count: 50),
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
            ),
            (
                Array(0x01...0x19), [UInt8](repeating: 0xcd, count: 50),
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"
            ),
            (
                [UInt8](repeating: 0xaa, count: 131),
                Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
        ]
    )
    func vectors(key: [UInt8], message: [UInt8], code: String) {
        #expect(MessageKey(Secret(utf8: key)).authenticate(message) == [UInt8](hexadecimal: code))
    }

    @Test("may be empty, and so may the message")
    func empty() {
        let code = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"
        #expect(MessageKey(Secret("")).authenticate([]) == [UInt8](hexadecimal: code))
    }

    @Test(
        "compares codes by every byte and the length",
        arguments: [
            ([], [], true), ([1, 2, 3], [1, 2, 3], true), ([1, 2, 3], [1, 2, 4], false),
            ([1, 2, 3], [0, 2, 3], false),
            ([1, 2, 3], [1, 2], false), ([], [0], false),
        ] as [([UInt8], [UInt8], Bool)]
    )
    func comparison(left: [UInt8], right: [UInt8], areEqual: Bool) {
        #expect(ConstantTime.areEqual(left, right) == areEqual)
    }
}
