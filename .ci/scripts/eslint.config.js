// The recommended rules. Names that one script defines and another one uses are left to the type
// checker, which knows the scripts of each page.
import js from "@eslint/js";

export default [
  js.configs.recommended,
  {
    files: ["**/*.js"],
    languageOptions: { ecmaVersion: "latest", sourceType: "script" },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "no-undef": "off",
      "no-unused-vars": ["error", { vars: "local", argsIgnorePattern: "^_" }],
      eqeqeq: "error",
      "no-var": "error",
    },
  },
];
