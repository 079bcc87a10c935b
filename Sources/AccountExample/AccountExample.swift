@main
enum AccountExample {
    static func main() {}
}
