extension Substring {
    /// The text without spaces, tabs and carriage returns at its ends.
    func trimmingBlanks() -> Substring {
        let isBlank = { (character: Character) in character == " " || character == "\t" || character == "\r" }
        var rest = drop(while: isBlank)
        while let last = rest.last, isBlank(last) {
            rest.removeLast()
        }
        return rest
    }
}
