/// The elements of an array inside a ``JSONLine``, in order.
package struct JSONArray: Sendable {
    private var output: [UInt8] = [UInt8(ascii: "[")]
    private var isFirst = true

    var bytes: [UInt8] { output + [UInt8(ascii: "]")] }

    package mutating func element(_ value: String) {
        separate()
        output.append(jsonString: value)
    }

    package mutating func element(_ value: Double) {
        separate()
        output.append(jsonNumber: value)
    }

    package mutating func object(_ body: (inout JSONLine) throws -> Void) rethrows {
        separate()
        var nested = JSONLine()
        try body(&nested)
        nested.append(to: &output)
    }

    private mutating func separate() {
        if !isFirst { output.append(UInt8(ascii: ",")) }
        isFirst = false
    }
}
