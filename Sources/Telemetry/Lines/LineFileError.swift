private import Glibc

/// A failed call that opens or writes a file of lines.
package struct LineFileError: Error, CustomStringConvertible {
    /// The call that failed, such as `open`.
    package let call: String
    /// The file; `nil` for a descriptor without a name.
    package let path: String?
    /// The value of `errno`.
    package let code: Int32

    package var description: String {
        let reason = unsafe String(cString: strerror(code))
        return "\(call)\(path.map { " \($0)" } ?? ""): \(reason)"
    }
}
