extension String {
    /// The text as one word of a shell's line, for whoever copies the line from a message.
    var shellWord: String {
        let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:,@%+=")
        guard isEmpty || !allSatisfy(plain.contains) else { return self }
        return "'" + replacing("'", with: "'\\''") + "'"
    }
}
