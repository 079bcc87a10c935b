internal import HTTPClient

extension HTTPFailure {
    /// The kind of failure as a code of lower-case words, such as `receive_failed`.
    var shortCode: String {
        var code = ""
        var isInsideWord = false
        for letter in kind.rawValue {
            if letter.isUppercase, isInsideWord { code += "_" }
            code += letter.lowercased()
            isInsideWord = letter.isLowercase
        }
        return code
    }
}
